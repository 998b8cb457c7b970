"""The controller: __main__ > cli > app > http, sweeps > ops > store, policy > model."""
