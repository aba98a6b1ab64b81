import {
  type AnswerSink,
  answerOf,
  asText,
  type Backend,
  type BackendOptions,
  fieldsWithUsage,
  tellUsage,
} from './backend.js';

/** Backend for OpenAI's completions of a text. */
export function completionsBackend(options: BackendOptions): Backend {
  const common = fieldsWithUsage(options);
  return {
    path: options.path ?? '/v1/completions',
    endsWithConnection: false,
    body: (turn, earlier) =>
      JSON.stringify({
        ...common,
        prompt: asText(turn, earlier),
        ...(turn.maxTokens === null ? {} : { max_tokens: turn.maxTokens }),
        ...turn.fields,
      }),
    readEvent: (data, sink) => {
      if (data === '[DONE]') sink.finish();
      else readCompletion(data, sink);
    },
    readWhole: readCompletion,
  };
}

function readCompletion(data: string, sink: AnswerSink): void {
  const answer = answerOf(data, sink);
  if (answer === null) return;
  const choices = (answer.choices ?? []) as { text?: string; finish_reason?: string | null }[];
  for (const { text } of choices) if (text) sink.text(text);
  tellUsage(answer, sink);
  if (choices.some(({ finish_reason }) => typeof finish_reason === 'string')) sink.finish();
}
