"""Generated from the .proto files beside it (`make protos`); README.md says where they come from."""
