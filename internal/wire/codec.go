package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// MaxFrame is the default limit on one frame's size in bytes. Log entries are cut
// far below it; the largest frames are lists and file pieces.
const MaxFrame = 64 << 20

// ErrFrameTooLarge is returned, wrapped, for a frame over the limit.
var ErrFrameTooLarge = errors.New("frame too large")

// Handle is the msgpack handle of every encoding of ours, on the wire and on disk:
// strings stay strings, maps of any are map[string]any, times are exact, struct
// fields go by name. What has no value need not be written where `wire` says so: reports, the log and snapshots have millions of
// such fields.
var Handle = newHandle("entry", "wire", "codec", "json")

// rows is the handle of what is kept beyond the log. It does not know `entry`, by which empty lists and maps are left out.
var rows = newHandle("wire", "codec", "json")

func newHandle(tags ...string) *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.RawToString = true
	h.MapType = reflect.TypeOf(map[string]any(nil))
	h.TypeInfos = codec.NewTypeInfos(tags)
	return h
}

// keptRoom bounds the memory that an encoder which is not in use holds on to.
const keptRoom = 1 << 20

// encoder is used over and over: making one costs more than what most frames hold.
type encoder struct {
	codec *codec.Encoder
	body  []byte // of the last value
	frame []byte // what is to be written at once
	pool  *sync.Pool
}

var (
	encoders = encodersOf(Handle)
	ofRows   = encodersOf(rows)
	decoders = sync.Pool{New: func() any { return codec.NewDecoderBytes([]byte{}, Handle) }}
)

func encodersOf(h *codec.MsgpackHandle) *sync.Pool {
	pool := &sync.Pool{}
	pool.New = func() any { return &encoder{codec: codec.NewEncoderBytes(new([]byte), h), pool: pool} }
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
	e.codec.ResetBytes(&e.body)
	if err := e.codec.Encode(v); err != nil {
		return fmt.Errorf("encode %T: %w", v, err)
	}
	return nil
}

// release gives the encoder back. What it holds is another's from then on.
func (e *encoder) release() {
	if cap(e.body)+cap(e.frame) <= keptRoom {
		e.pool.Put(e)
	}
}

// Encode gives v as msgpack.
func Encode(v any) ([]byte, error) { return Append(nil, v) }

// EncodeRow gives a row of the state as msgpack. Decode makes the same row of it, whatever is empty in it.
func EncodeRow(v any) ([]byte, error) { return appendBy(ofRows, nil, v) }

// Append adds v as msgpack to what is to be written.
func Append(to []byte, v any) ([]byte, error) { return appendBy(encoders, to, v) }

func appendBy(pool *sync.Pool, to []byte, v any) ([]byte, error) {
	e := pool.Get().(*encoder) //nolint:forcetypeassert // nothing else is put there
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
	d := decoders.Get().(*codec.Decoder) //nolint:forcetypeassert // nothing else is put there
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

// WriteFrame writes v as one frame.
func WriteFrame(w io.Writer, v any) error { return writeFrames(w, nil, v) }

// writeFrames writes first, which are whole frames, and a frame for each value, all at once: every write is a packet
// of its own, and wakes the other side.
func writeFrames(w io.Writer, first []byte, values ...any) error {
	e, err := frames(first, values...)
	if err != nil {
		return err
	}
	return e.write(w)
}

// frames leaves first, and a frame for each value, in an encoder, for one write.
func frames(first []byte, values ...any) (*encoder, error) {
	e := encoders.Get().(*encoder) //nolint:forcetypeassert // nothing else is put there
	e.frame = append(e.frame[:0], first...)
	for _, v := range values {
		if err := e.encode(v); err != nil {
			return nil, err
		}
		var err error
		if e.frame, err = appendFrame(e.frame, e.body); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// write writes the frames, and gives the encoder back.
func (e *encoder) write(w io.Writer) error {
	_, err := w.Write(e.frame)
	e.release()
	return err
}

// appendFrame adds a frame to what is to be written.
func appendFrame(to, body []byte) ([]byte, error) {
	if len(body) > MaxFrame {
		return to, fmt.Errorf("write frame of %d bytes: %w, the limit is %d", len(body), ErrFrameTooLarge, MaxFrame)
	}
	to = binary.BigEndian.AppendUint32(slices.Grow(to, 4+len(body)), uint32(len(body))) //nolint:gosec // bounded above
	return append(to, body...), nil
}

// writeRaw writes a frame that is encoded already, behind others.
func writeRaw(w io.Writer, first, body []byte) error {
	all, err := appendFrame(slices.Clone(first), body)
	if err != nil {
		return err
	}
	_, err = w.Write(all)
	return err
}

// ReadFrame reads one frame of at most limit bytes into v.
func ReadFrame(r io.Reader, limit int, v any) error {
	body, err := readRaw(r, limit)
	if err != nil {
		return err
	}
	return Decode(body, v)
}

func readRaw(r io.Reader, limit int) ([]byte, error) {
	n, err := readSize(r, limit)
	if err != nil {
		return nil, err
	}
	return readBody(r, n)
}

// readBody reads a frame's n bytes.
func readBody(r io.Reader, n int) ([]byte, error) {
	// Grown as it arrives: a lying length costs its sender bytes, not us memory.
	body := make([]byte, 0, min(n, 64<<10))
	for len(body) < n {
		if len(body) == cap(body) {
			body = append(make([]byte, 0, min(n, 2*cap(body))), body...)
		}
		got, err := io.ReadFull(r, body[len(body):cap(body)])
		body = body[:len(body)+got]
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return body, err
		}
	}
	return body, nil
}
