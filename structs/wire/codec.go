package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/hashicorp/go-msgpack/v2/codec"
)

// MaxFrame is the default limit on one frame's size in bytes. Log entries are cut
// far below it; the largest frames are lists and file pieces.
const MaxFrame = 64 << 20

// ErrFrameTooLarge is returned, wrapped, for a frame over the limit.
var ErrFrameTooLarge = errors.New("frame too large")

// Handle is the msgpack handle of every encoding of ours, on the wire and on disk:
// strings stay strings, maps of any are map[string]any, times are exact, struct
// fields go by name.
var Handle = newHandle()

func newHandle() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{WriteExt: true}
	h.RawToString = true
	h.MapType = reflect.TypeOf(map[string]any(nil))
	return h
}

// Encode gives v as msgpack.
func Encode(v any) ([]byte, error) {
	var out []byte
	if err := codec.NewEncoderBytes(&out, Handle).Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return out, nil
}

// Decode reads msgpack into v. It never panics, whatever the bytes are.
func Decode(data []byte, v any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decode %T: malformed msgpack: %v", v, r)
		}
	}()
	if err := codec.NewDecoderBytes(data, Handle).Decode(v); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}

// WriteFrame writes v as one frame.
func WriteFrame(w io.Writer, v any) error {
	body, err := Encode(v)
	if err != nil {
		return err
	}
	return writeRaw(w, body)
}

func writeRaw(w io.Writer, body []byte) error {
	if len(body) > MaxFrame {
		return fmt.Errorf("write frame of %d bytes: %w, the limit is %d", len(body), ErrFrameTooLarge, MaxFrame)
	}
	buf := make([]byte, 4, 4+len(body))
	binary.BigEndian.PutUint32(buf, uint32(len(body))) //nolint:gosec // bounded above
	_, err := w.Write(append(buf, body...))
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
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n > limit {
		return nil, fmt.Errorf("read frame of %d bytes: %w, the limit is %d", n, ErrFrameTooLarge, limit)
	}
	// Grown as it arrives: a lying length costs its sender bytes, not us memory.
	if n <= 64<<10 {
		body := make([]byte, n)
		_, err := io.ReadFull(r, body)
		return body, err
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(body) < n {
		err = io.ErrUnexpectedEOF
	}
	return body, err
}
