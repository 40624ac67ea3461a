"""Keys of `pass_configs`."""


class _Keys(type):
    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return name


class PassConfigKey(metaclass=_Keys):
    """The keys of `pass_configs` as attributes: `PassConfigKey.TL_ENABLE_FAST_MATH`.

    Every name is there, and is its own value. A key that has no meaning here is accepted.
    """
