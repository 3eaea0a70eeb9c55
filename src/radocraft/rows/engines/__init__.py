"""Where rows are: files, data frames, DuckDB, Postgres, Spark. Engines are imported in this folder and nowhere else."""
