package write

import "nodewise.dev/clients/go/internal/rawjson"

// metadata is what is read of an object that is written, and of the apiserver's response. Nothing else is read: the other fields may
// contain values that cannot be decoded, because any client may write them.
type metadata struct {
	Name            string `json:"name"`
	GenerateName    string `json:"generateName"`
	ResourceVersion string `json:"resourceVersion"`
}

func metadataOf(object []byte) (metadata, error) {
	var read metadata
	err := rawjson.Fields(object, map[string]any{"metadata": &read})
	return read, err
}
