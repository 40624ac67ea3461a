from pkg import inner

def scaled(x):
    return x * (inner.steps + 1) + 5.0
