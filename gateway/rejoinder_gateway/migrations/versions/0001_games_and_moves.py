"""Games and their moves."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "games",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("created", _MOMENT, nullable=False),
        sa.Column("updated", _MOMENT, nullable=False),
        sa.Column("finished", _MOMENT, nullable=True),
        sa.Column("game", sa.String(40), nullable=False),
        sa.Column("configuration", sa.String(80), nullable=True),
        sa.Column("rules", sa.JSON, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("seat", sa.Integer, nullable=False),
        sa.Column("argmax", sa.Boolean, nullable=False),
        sa.Column("open", sa.Boolean, nullable=False),
        sa.Column("opponent", sa.String(120), nullable=False),
        sa.Column("opponent_kind", sa.String(10), nullable=False),
        sa.Column("snapshot", sa.BigInteger, nullable=True),
        sa.Column("abstraction", sa.String(40), nullable=False),
        sa.Column("kernel", sa.String(40), nullable=False),
        sa.Column("player", sa.JSON, nullable=False),
        sa.Column("moves", sa.Integer, nullable=False),
        sa.Column("outcome", sa.String(10), nullable=True),
        sa.Column("winner", sa.Integer, nullable=True),
        sa.Column("utility", sa.Float, nullable=True),
    )
    op.create_index("ix_games_updated", "games", ["updated"])
    op.create_table(
        "moves",
        sa.Column(
            "game", sa.String(32), sa.ForeignKey("games.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("actor", sa.Integer, nullable=False),
        sa.Column("move", sa.Integer, nullable=False),
        sa.Column("made", _MOMENT, nullable=False),
        sa.Column("decision", sa.JSON, nullable=True),
    )


def downgrade() -> None:
    op.drop_table("moves")
    op.drop_table("games")
