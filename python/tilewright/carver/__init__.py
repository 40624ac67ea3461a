"""What is known of the GPU of this machine."""
