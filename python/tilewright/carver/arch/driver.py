"""Facts of a GPU, asked of torch."""


def _properties(device):
    try:
        import torch
    except ImportError:
        raise RuntimeError("torch is asked for the GPU, and is not installed") from None
    if not torch.cuda.is_available():
        raise RuntimeError("there is no GPU that torch can use")
    return torch.cuda.get_device_properties(device)


def get_num_sms(device_id=0):
    """The multiprocessors of a GPU. Raises `RuntimeError` without torch or a GPU that it can use."""
    return _properties(device_id).multi_processor_count


def get_cuda_device_properties(device_id=0):
    """What torch knows of a GPU. Raises `RuntimeError` as `get_num_sms` does."""
    return _properties(device_id)
