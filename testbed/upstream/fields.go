package main

import (
	"fmt"
	"reflect"
	"unsafe"
)

// field returns a pointer to the unexported field `name` of the struct that `of` points to. With it the controller's
// recorder, queue and so on are replaced without changing or copying its package. The field must exist and have exactly
// the type F. If another Kubernetes version differs, the result is an error, never a wrong memory access.
func field[F any](of any, name string) (*F, error) {
	value := reflect.ValueOf(of).Elem().FieldByName(name)
	if !value.IsValid() {
		return nil, fmt.Errorf("upstream has changed: %T has no field %q", of, name)
	}
	if want := reflect.TypeFor[F](); value.Type() != want {
		return nil, fmt.Errorf("upstream has changed: field %q of %T is a %s, not a %s", name, of, value.Type(), want)
	}
	return (*F)(unsafe.Pointer(value.UnsafeAddr())), nil
}

// setField replaces the value of an unexported field; see field.
func setField[F any](of any, name string, to F) error {
	at, err := field[F](of, name)
	if err == nil {
		*at = to
	}
	return err
}
