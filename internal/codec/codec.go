package codec

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	msgpack "github.com/hashicorp/go-msgpack/v2/codec"
)

// Handle is the msgpack handle of every encoding of ours, on the wire and on disk:
// strings stay strings, maps of any are map[string]any, times are exact, struct
// fields go by name. What has no value need not be written where `wire` allows that: reports, the log and snapshots have millions of
// such fields.
var Handle = newHandle("entry", "wire", "codec", "json")

// rows is the handle of what is kept beyond the log. It does not know `entry`, by which empty lists and maps are left out.
var rows = newHandle("wire", "codec", "json")

func newHandle(tags ...string) *msgpack.MsgpackHandle {
	h := &msgpack.MsgpackHandle{WriteExt: true}
	h.RawToString = true
	h.MapType = reflect.TypeOf(map[string]any(nil))
	h.TypeInfos = msgpack.NewTypeInfos(tags)
	return h
}

// keptRoom bounds the memory that an encoder which is not in use holds on to.
const keptRoom = 1 << 20

// encoder is used over and over: making one costs more than what most frames hold.
type encoder struct {
	msgpack *msgpack.Encoder
	body    []byte // of the last value
	frame   []byte // what is to be written at once
	pool    *sync.Pool
}

var (
	encoders = encodersOf(Handle)
	ofRows   = encodersOf(rows)
	decoders = sync.Pool{New: func() any { return msgpack.NewDecoderBytes([]byte{}, Handle) }}
)

func encodersOf(h *msgpack.MsgpackHandle) *sync.Pool {
	pool := &sync.Pool{}
	pool.New = func() any { return &encoder{msgpack: msgpack.NewEncoderBytes(new([]byte), h), pool: pool} }
	return pool
}

// encode leaves v's encoding in body.
func (e *encoder) encode(v any) error {
	if g, ok := v.(Given); ok {
		v = g.V
	}
	if e.body == nil {
		e.body = make([]byte, 0, 1024)
	}
	e.msgpack.ResetBytes(&e.body)
	if err := e.msgpack.Encode(v); err != nil {
		return fmt.Errorf("encode %T: %w", v, err)
	}
	return nil
}

// release returns the encoder to the pool. The caller must not use it afterwards.
func (e *encoder) release() {
	if cap(e.body)+cap(e.frame) <= keptRoom {
		e.pool.Put(e)
	}
}

// Encode returns v as msgpack.
func Encode(v any) ([]byte, error) { return Append(nil, v) }

// EncodeRow returns a row of the state as msgpack. Decode makes the same row of it, whatever is empty in it.
func EncodeRow(v any) ([]byte, error) { return appendBy(ofRows, nil, v) }

// Append adds v as msgpack to what is to be written.
func Append(to []byte, v any) ([]byte, error) { return appendBy(encoders, to, v) }

func appendBy(pool *sync.Pool, to []byte, v any) ([]byte, error) {
	e := pool.Get().(*encoder) // nothing else is put there
	if err := e.encode(v); err != nil {
		return to, err
	}
	out := append(slices.Grow(to, len(e.body)), e.body...)
	e.release()
	return out, nil
}

// Decode reads msgpack into v. It never panics, whatever the bytes are.
func Decode(data []byte, v any) (err error) {
	if data == nil {
		data = []byte{} // of nil the decoder takes no notice
	}
	d := decoders.Get().(*msgpack.Decoder) // nothing else is put there
	defer func() {
		if r := recover(); r != nil { // whatever state it is in, it is not used again
			err = fmt.Errorf("decode %T: malformed msgpack: %v", v, r)
		}
	}()
	d.ResetBytes(data)
	err = d.Decode(v)
	d.ResetBytes([]byte{}) // it must not keep the data
	decoders.Put(d)
	if err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}
