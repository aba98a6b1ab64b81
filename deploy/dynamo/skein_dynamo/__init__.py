"""Skein as a backend of NVIDIA Dynamo."""
