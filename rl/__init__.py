"""Learning to ideate. What lives here: `reward`, which says what each idea of a session brought."""
