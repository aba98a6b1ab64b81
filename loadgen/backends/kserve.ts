import { type AnswerSink, answerOf, asText, type Backend, type BackendOptions } from './backend.js';

/**
 * Backend for the generate extension of KServe's v2 protocol: text_input in, text_output out, no counts. There are two
 * public descriptions, and servers of both:
 *
 * - Triton's (docs/protocol/extension_generate.md): a stream of responses that ends with the connection. What the
 * request
 *   has besides text_input is handed to the model, as its inputs or as parameters, whichever it has.
 * - The Open Inference Protocol's (specification/protocol/generate_rest.yaml): parameters in an object of that name,
 * and
 *   `done` in each response of a stream. Fields with an object `parameters`, empty or not, ask for this form.
 */
export function kserveBackend({ model, path, stream, ignoreEos, fields }: BackendOptions): Backend {
  const verb = stream ? 'generate_stream' : 'generate';
  return {
    path: path ?? `/v2/models/${encodeURIComponent(model)}/${verb}`,
    endsWithConnection: true,
    body: (turn, earlier) => {
      const { parameters, ...others } = { ...fields, ...turn.fields };
      const own = {
        stream,
        ...(turn.maxTokens === null ? {} : { max_tokens: turn.maxTokens }),
        ...(ignoreEos ? { ignore_eos: true } : {}),
      };
      const isNested = typeof parameters === 'object' && parameters !== null;
      return JSON.stringify({
        text_input: asText(turn, earlier),
        ...(isNested ? { parameters: { ...own, ...parameters } } : own),
        ...others,
      });
    },
    readEvent: (data, sink) => (data === '[DONE]' ? sink.finish() : readOutput(data, sink)),
    readWhole: readOutput,
  };
}

function readOutput(data: string, sink: AnswerSink): void {
  const answer = answerOf(data, sink);
  if (answer === null) return;
  if (typeof answer.text_output === 'string' && answer.text_output !== '') sink.text(answer.text_output);
  if (answer.done === true) sink.finish();
  else if (answer.done === false) sink.goOn();
}
