import { type AnswerSink, answerOf, asText, type Backend, type BackendOptions } from './backend.js';

/** The generate extension of KServe's v2 protocol, as Triton has it: text_input in, text_output out, no counts. */
export function kserveBackend({ model, path, stream, ignoreEos, fields }: BackendOptions): Backend {
  const verb = stream ? 'generate_stream' : 'generate';
  return {
    path: path ?? `/v2/models/${encodeURIComponent(model)}/${verb}`,
    endsWithConnection: true,
    body: (turn, earlier) =>
      JSON.stringify({
        text_input: asText(turn, earlier),
        stream,
        ...(turn.maxTokens === null ? {} : { max_tokens: turn.maxTokens }),
        ...(ignoreEos ? { ignore_eos: true } : {}),
        ...fields,
        ...turn.fields,
      }),
    readEvent: (data, sink) => (data === '[DONE]' ? sink.finish() : readOutput(data, sink)),
    readWhole: readOutput,
  };
}

function readOutput(data: string, sink: AnswerSink): void {
  const answer = answerOf(data, sink);
  if (answer === null) return;
  if (typeof answer.text_output === 'string' && answer.text_output !== '') sink.text(answer.text_output);
}
