"""Name resolution and type inference: what the names of a file stand for, as queries that lead to one another."""
