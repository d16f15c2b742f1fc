"""What ties a game to its run and to the engine's states; results in the order of their end."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Games of before have neither; they go on as they did."""
    op.add_column("games", sa.Column("fingerprint", sa.String(64), nullable=True))
    op.add_column("games", sa.Column("position", sa.String(32), nullable=True))
    op.create_index("ix_games_finished", "games", ["finished", "id"])


def downgrade() -> None:
    op.drop_index("ix_games_finished", "games")
    op.drop_column("games", "position")  # not in a batch, which would drop the table and its moves
    op.drop_column("games", "fingerprint")
