import { contentOf } from '../attachments/message-content.js';
import { type AskedModel, TOP_LOG_PROBS } from '../conversation.js';
import type { Parameters } from '../parameters.js';
import type { StoredMessage } from '../stored-conversation.js';
import type { ResponseItem, ToolCall } from './tool-call.js';

/** Body of POST /v1/responses. */
export interface ResponseRequest {
  model: string;
  input: ResponseItem[];
  [parameter: string]: unknown;
}

/**
 * Request for an answer that may call tools of servers. Each call waits for the reader; nothing is kept at the server.
 * @param servers names of servers of tools
 */
export function responseRequest(
  { id: model, sees }: AskedModel,
  path: readonly StoredMessage[],
  parameters: Parameters,
  servers: readonly string[],
): ResponseRequest {
  const { system, stop, wantsLogProbs } = parameters;
  const { max_tokens, ...numbers } = parameters.numbers;
  const input = path.flatMap((message, index): ResponseItem[] => {
    const { role, text, attachments = [], calls = [] } = message;
    if (role === 'user') {
      const next = path[index + 1];
      const isAnswered = next === undefined || next.text !== '' || next.calls !== undefined;
      return isAnswered
        ? [{ type: 'message', role, content: partsOf(contentOf(text, attachments, sees)) }]
        : [];
    }
    return [
      ...calls.flatMap(itemsOf),
      ...(text === '' ? [] : [{ type: 'message', role, content: text } as const]),
    ];
  });
  return {
    ...{ model, input, ...numbers, store: false },
    ...(max_tokens === undefined ? {} : { max_output_tokens: max_tokens }),
    ...(system === '' ? {} : { instructions: system }),
    ...(stop.length === 0 ? {} : { stop }),
    ...(wantsLogProbs ? { include: ['message.output_text.logprobs'], top_logprobs: TOP_LOG_PROBS } : {}),
    tools: servers.map((server_label) => ({ type: 'mcp', server_label, require_approval: 'always' })),
  };
}

/** A call that was made, so that the model knows of it. */
function itemsOf({
  server: server_label,
  name,
  arguments: args,
  output,
  error,
  isDenied,
}: ToolCall): ResponseItem[] {
  if (isDenied || (output === null && error === null)) return [];
  return [{ type: 'mcp_call', server_label, name, arguments: args, output, error }];
}

/** Content of a question as responses take it. */
function partsOf(content: ReturnType<typeof contentOf>): unknown {
  if (typeof content === 'string') return content;
  return content.map((part) =>
    part.type === 'text'
      ? { type: 'input_text', text: part.text }
      : { type: 'input_image', image_url: part.image_url.url },
  );
}
