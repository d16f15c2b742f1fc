"""Alembic's entry: the connection is the one that `store.migrate` has opened."""

from __future__ import annotations

from alembic import context

from rejoinder_gateway.store import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    transactional_ddl=True,  # SQLite's too, which Alembic does not expect
)
with context.begin_transaction():
    context.run_migrations()
