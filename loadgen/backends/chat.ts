import { asMessages, type Backend, type BackendOptions, openAiBackend } from './backend.js';

interface Choice {
  delta?: Content;
  message?: Content;
}

interface Content {
  content?: string | null;
  reasoning?: string | null;
  reasoning_content?: string | null;
  tool_calls?: { function?: { arguments?: string } }[] | null;
}

/** Backend for OpenAI's chat completions. */
export function chatBackend(options: BackendOptions): Backend {
  return openAiBackend(
    options,
    '/v1/chat/completions',
    (turn, earlier) => ({ messages: asMessages(turn, earlier) }),
    ({ delta, message }: Choice) => textOf(delta ?? message ?? {}),
  );
}

/** Text of a delta: reasoning and calls are tokens too. */
function textOf({ content, reasoning, reasoning_content, tool_calls }: Content): string {
  const calls = tool_calls?.map((call) => call.function?.arguments ?? '').join('') ?? '';
  return (reasoning ?? reasoning_content ?? '') + (content ?? '') + calls;
}
