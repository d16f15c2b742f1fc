"""The games in the terms of other libraries, so that their tools can train on them.

Every rule is the engine's; these modules translate, through the game contract alone.
"""
