// This empty file lets Go accept functions without a body: those of upstream that go:linkname names.
