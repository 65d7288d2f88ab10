"""Methods: each is one object that says what it searches, how it scores, and what it asks a model."""
