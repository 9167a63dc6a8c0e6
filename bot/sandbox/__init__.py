"""What a process that runs somebody's code may do. Each layer is used where the kernel has it, and the layers that are on are named."""
