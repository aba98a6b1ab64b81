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
  return piece.finishReason === 'timeout' ? 'time_limit' : piece.stopReason;
}

/** OpenAI's finish reasons; a time limit is a limit of length to its clients. */
export function finishReason(reason: string): 'stop' | 'length' {
  return reason === 'stop' ? 'stop' : 'length';
}
