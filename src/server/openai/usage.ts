export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
}

/** No prompt token is ever taken from the cache of another request yet, so cached_tokens is 0. */
export function usage(promptTokens: number, completionTokens: number): Usage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: 0 },
  };
}

/** OpenAI's finish reasons; a time limit is a limit of length to its clients. */
export function finishReason(reason: string): 'stop' | 'length' {
  return reason === 'stop' ? 'stop' : 'length';
}
