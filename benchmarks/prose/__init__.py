"""Is any prose lost, is any markup left?"""
