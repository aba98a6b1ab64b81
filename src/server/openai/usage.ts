export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
  completion_tokens_details?: { reasoning_tokens: number };
}

/** `cachedTokens`: those of the prompt tokens that were found in the cache instead of being computed. */
export function usage(
  promptTokens: number,
  completionTokens: number,
  cachedTokens: number,
  reasoningTokens?: number,
): Usage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    ...(reasoningTokens === undefined
      ? {}
      : { completion_tokens_details: { reasoning_tokens: reasoningTokens } }),
  };
}

/** What ended the answer, as vLLM has it, where more is known than the finish reason says. */
export function stopReason(piece: {
  finishReason: string | null;
  stopReason: string | number | null;
}): string | number | null {
  if (piece.finishReason === 'timeout') return 'time_limit';
  return piece.finishReason === 'cancelled' ? 'cancelled' : piece.stopReason;
}

/**
 * OpenAI's finish reasons. A time limit, and a cancellation by POST /v1/requests/{id}/cancel, are a limit of length to
 * its clients: they know no other word for an answer that is not whole, and some fail on a word that they do not know.
 */
export function finishReason(reason: string): 'stop' | 'length' {
  return reason === 'stop' ? 'stop' : 'length';
}
