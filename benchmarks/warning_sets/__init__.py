"""Material for the benchmark of warnings: small data sets, each with the warnings that it should bring."""
