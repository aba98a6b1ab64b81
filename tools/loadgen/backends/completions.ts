import {
  type AnswerSink,
  asText,
  type Backend,
  type BackendOptions,
  errorOf,
  parseObject,
  tellUsage,
} from './backend.js';

/** OpenAI's completions of a text. */
export function completionsBackend({ model, path, stream, ignoreEos, fields }: BackendOptions): Backend {
  const common = {
    model,
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    ...(ignoreEos ? { ignore_eos: true } : {}),
    ...fields,
  };
  return {
    path: path ?? '/v1/completions',
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
  const answer = parseObject(data);
  const error = errorOf(answer);
  if (error !== null) {
    sink.fail(error);
    return;
  }
  const choices = (answer.choices ?? []) as { text?: string; finish_reason?: string | null }[];
  for (const { text } of choices) if (text) sink.text(text);
  tellUsage(answer, sink);
  if (choices.some(({ finish_reason }) => typeof finish_reason === 'string')) sink.finish();
}
