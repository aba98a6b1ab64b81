export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number; image_tokens?: number };
  completion_tokens_details?: { reasoning_tokens: number };
}

/**
 * Usage of an answer. `cachedTokens`: number of prompt tokens that were found in the cache instead of being computed.
 * `imageTokens`: number of them that are of pictures.
 */
export function usage(
  promptTokens: number,
  completionTokens: number,
  cachedTokens: number,
  reasoningTokens?: number,
  imageTokens = 0,
): Usage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: {
      cached_tokens: cachedTokens,
      ...(imageTokens > 0 && { image_tokens: imageTokens }),
    },
    ...(reasoningTokens === undefined
      ? {}
      : { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
  };
}

/** vLLM's stop_reason: what ended the answer, where more is known than the finish reason says. */
export function stopReason(piece: {
  finishReason: string | null;
  stopReason: string | number | null;
}): string | number | null {
  if (piece.finishReason === 'timeout') return 'time_limit';
  return piece.finishReason === 'cancelled' ? 'cancelled' : piece.stopReason;
}

/**
 * OpenAI's finish reason. A time limit, and a cancellation by POST /v1/requests/{id}/cancel, become 'length': clients
 * know no other word for an incomplete answer, and some fail on an unknown one.
 */
export function finishReason(reason: string): 'stop' | 'length' {
  return reason === 'stop' ? 'stop' : 'length';
}
