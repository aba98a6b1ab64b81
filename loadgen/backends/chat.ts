import {
  type AnswerSink,
  answerOf,
  asMessages,
  type Backend,
  type BackendOptions,
  fieldsWithUsage,
  tellUsage,
} from './backend.js';

interface Choice {
  delta?: Content;
  message?: Content;
  finish_reason?: string | null;
}

interface Content {
  content?: string | null;
  reasoning?: string | null;
  reasoning_content?: string | null;
  tool_calls?: { function?: { arguments?: string } }[] | null;
}

/** Backend for OpenAI's chat completions. */
export function chatBackend(options: BackendOptions): Backend {
  const common = fieldsWithUsage(options);
  return {
    path: options.path ?? '/v1/chat/completions',
    endsWithConnection: false,
    body: (turn, earlier) =>
      JSON.stringify({
        ...common,
        messages: asMessages(turn, earlier),
        ...(turn.maxTokens === null ? {} : { max_tokens: turn.maxTokens }),
        ...turn.fields,
      }),
    readEvent: (data, sink) => {
      if (data === '[DONE]') sink.finish();
      else readChat(data, sink);
    },
    readWhole: readChat,
  };
}

function readChat(data: string, sink: AnswerSink): void {
  const answer = answerOf(data, sink);
  if (answer === null) return;
  const choices = (answer.choices ?? []) as Choice[];
  for (const choice of choices) {
    const text = textOf(choice.delta ?? choice.message ?? {});
    if (text !== '') sink.text(text);
  }
  tellUsage(answer, sink);
  if (choices.some(({ finish_reason }) => typeof finish_reason === 'string')) sink.finish();
}

/** Text of a delta: reasoning and calls are tokens too. */
function textOf({ content, reasoning, reasoning_content, tool_calls }: Content): string {
  const calls = tool_calls?.map((call) => call.function?.arguments ?? '').join('') ?? '';
  return (reasoning ?? reasoning_content ?? '') + (content ?? '') + calls;
}
