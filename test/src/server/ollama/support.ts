import type { Response as Answer } from 'undici';

/** Lines of a stream, each parsed. */
export async function readLines<T>(response: Response | Answer): Promise<T[]> {
  const text = await response.text();
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line) as T);
}

/** An answer of /api/chat or /api/generate, or a line of it. */
export interface Part {
  model: string;
  created_at: string;
  message?: {
    role: string;
    content: string;
    thinking?: string;
    tool_calls?: { id: string; function: { index: number; name: string; arguments: object } }[];
  };
  response?: string;
  thinking?: string;
  done: boolean;
  done_reason?: string;
  context?: number[];
  logprobs?: { token: string; logprob: number; top_logprobs: object[] }[];
  total_duration?: number;
  load_duration?: number;
  prompt_eval_count?: number;
  prompt_eval_duration?: number;
  eval_count?: number;
  eval_duration?: number;
  error?: string;
}
