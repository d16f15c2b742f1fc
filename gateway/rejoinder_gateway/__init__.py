"""The HTTP gateway: status of runs, policies, and play against them, with a page for people."""
