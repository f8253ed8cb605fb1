package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// MaxFrame is the default limit on one frame's size in bytes. Log entries are cut
// far below it; the largest frames are lists and file pieces.
const MaxFrame = 64 << 20

// ErrFrameTooLarge is returned, wrapped, for a frame over the limit.
var ErrFrameTooLarge = errors.New("frame too large")

// WriteFrame writes v as one frame.
func WriteFrame(w io.Writer, v any) error { return WriteFrames(w, nil, v) }

// WriteFrames writes first, which are whole frames, and a frame for each value, all at once: every write is a packet
// of its own, and wakes the other side.
func WriteFrames(w io.Writer, first []byte, values ...any) error {
	f, err := EncodeFrames(first, values...)
	if err != nil {
		return err
	}
	return f.Write(w)
}

// Frames are frames that were encoded for one write.
type Frames struct{ e *encoder }

// EncodeFrames encodes a frame for each value, behind first, which are whole frames. Nothing is written before all could be
// encoded.
func EncodeFrames(first []byte, values ...any) (Frames, error) {
	e := encoders.Get().(*encoder) // nothing else is put there
	e.frame = append(e.frame[:0], first...)
	for _, v := range values {
		if err := e.encode(v); err != nil {
			return Frames{}, err
		}
		var err error
		if e.frame, err = AppendFrame(e.frame, e.body); err != nil {
			return Frames{}, err
		}
	}
	return Frames{e}, nil
}

// Write writes the frames, once: what holds them is used for others from then on.
func (f Frames) Write(w io.Writer) error {
	_, err := w.Write(f.e.frame)
	f.e.release()
	return err
}

// AppendFrame adds a frame to what is to be written.
func AppendFrame(to, body []byte) ([]byte, error) {
	if len(body) > MaxFrame {
		return to, fmt.Errorf("write frame of %d bytes: %w, the limit is %d", len(body), ErrFrameTooLarge, MaxFrame)
	}
	to = binary.BigEndian.AppendUint32(slices.Grow(to, 4+len(body)), uint32(len(body))) // bounded above
	return append(to, body...), nil
}

// WriteRaw writes a frame that is encoded already, behind others.
func WriteRaw(w io.Writer, first, body []byte) error {
	all, err := AppendFrame(slices.Clone(first), body)
	if err != nil {
		return err
	}
	_, err = w.Write(all)
	return err
}

// ReadFrame reads one frame of at most limit bytes into v.
func ReadFrame(r io.Reader, limit int, v any) error {
	body, err := ReadRaw(r, limit)
	if err != nil {
		return err
	}
	return Decode(body, v)
}

// ReadRaw reads the body of one frame of at most limit bytes.
func ReadRaw(r io.Reader, limit int) ([]byte, error) {
	n, err := ReadSize(r, limit)
	if err != nil {
		return nil, err
	}
	return ReadBody(r, n)
}

// ReadBody reads a frame's n bytes.
func ReadBody(r io.Reader, n int) ([]byte, error) {
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

// ReadSize reads how long a frame is.
func ReadSize(r io.Reader, limit int) (int, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n > limit {
		return 0, fmt.Errorf("read frame of %d bytes: %w, the limit is %d", n, ErrFrameTooLarge, limit)
	}
	return n, nil
}
