import {
  type AnswerSink,
  answerOf,
  asMessages,
  type Backend,
  type BackendOptions,
  errorOf,
  parseObject,
} from './backend.js';

interface ResponseObject {
  output?: { content?: { text?: string }[]; arguments?: string }[];
  usage?: {
    input_tokens?: number;
    output_tokens?: number;
    input_tokens_details?: { cached_tokens?: number };
  } | null;
  status?: string;
  error?: { message?: string } | null;
}

/** Types of events whose delta is text of the answer. */
const DELTAS: ReadonlySet<unknown> = new Set([
  'response.output_text.delta',
  'response.reasoning_text.delta',
  'response.reasoning_summary_text.delta',
  'response.function_call_arguments.delta',
]);

/** Backend for OpenAI's responses. */
export function responsesBackend({ model, path, stream, ignoreEos, fields }: BackendOptions): Backend {
  const common = { model, stream, ...(ignoreEos ? { ignore_eos: true } : {}), ...fields };
  return {
    path: path ?? '/v1/responses',
    endsWithConnection: false,
    body: (turn, earlier) =>
      JSON.stringify({
        ...common,
        input: asMessages(turn, earlier),
        ...(turn.maxTokens === null ? {} : { max_output_tokens: turn.maxTokens }),
        ...turn.fields,
      }),
    readEvent,
    readWhole: (text, sink) => {
      const response = answerOf(text, sink);
      if (response === null) return;
      const { output = [] } = response as ResponseObject;
      for (const item of output) {
        const parts = item.content?.map((part) => part.text ?? '').join('') ?? item.arguments ?? '';
        if (parts !== '') sink.text(parts);
      }
      tellEnd(response as ResponseObject, sink);
    },
  };
}

function readEvent(data: string, sink: AnswerSink): void {
  if (data === '[DONE]') {
    sink.finish();
    return;
  }
  const event = parseObject(data);
  if (DELTAS.has(event.type)) {
    if (typeof event.delta === 'string' && event.delta !== '') sink.text(event.delta);
  } else if (event.type === 'error') {
    sink.fail(typeof event.message === 'string' ? event.message : (errorOf(event) ?? data));
  } else if (event.type === 'response.failed') {
    const { error } = event.response as ResponseObject;
    sink.fail(error?.message ?? 'response.failed');
  } else if (event.type === 'response.completed' || event.type === 'response.incomplete') {
    tellEnd(event.response as ResponseObject, sink);
  }
}

function tellEnd({ usage }: ResponseObject, sink: AnswerSink): void {
  if (usage !== null && usage !== undefined) {
    sink.usage(usage.input_tokens, usage.output_tokens, usage.input_tokens_details?.cached_tokens);
  }
  sink.finish();
}
