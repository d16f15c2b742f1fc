"""How many samples a move the agent thinks ahead with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Games of before were played by the policy alone."""
    op.add_column("games", sa.Column("search", sa.Integer, nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("games", "search")
