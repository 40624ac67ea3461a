"""Keys of `pass_configs`."""


class _Keys(type):
    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return name


class PassConfigKey(metaclass=_Keys):
    """The keys that TileLang's programs give; a key that has no meaning here is accepted."""
