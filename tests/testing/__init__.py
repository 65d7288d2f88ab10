"""Methods as objects, and a method of another distribution."""
