// A module without any logits post-processor.
export const limit = 3;
