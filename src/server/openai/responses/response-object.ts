import { randomBytes } from 'node:crypto';
import type { ServedGenerator } from '../../../serving/served-model.js';
import type { chatLogProb } from '../../answering/log-probs.js';
import type { McpTool } from '../schemas/response-tools.js';
import type { ResponseRequest } from '../schemas/responses.js';
import { isStrict } from './strict-schema.js';
import { type KeptTool, shownTools } from './tool-set.js';

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

export interface OutputText {
  type: 'output_text';
  text: string;
  annotations: [];
  logprobs?: ReturnType<typeof chatLogProb>[];
}

export interface ReasoningText {
  type: 'reasoning_text';
  text: string;
}

/** Fields of a call by the model. */
interface CallFields {
  id: string;
  status: ItemStatus;
  call_id: string;
  name: string;
  /** Absent: the tool is in none. */
  namespace?: string;
}

export type OutputItem =
  | { type: 'message'; id: string; status: ItemStatus; role: 'assistant'; content: OutputText[] }
  | {
      type: 'reasoning';
      id: string;
      status: ItemStatus;
      summary: [];
      content: ReasoningText[];
      /** Where the request asks for it, once the reasoning has ended. */
      encrypted_content?: string;
    }
  | ({ type: 'custom_tool_call'; input: string } & CallFields)
  | ({ type: 'function_call'; arguments: string } & CallFields)
  | {
      type: 'tool_search_call';
      id: string;
      status: ItemStatus;
      call_id: string;
      execution: 'client';
      arguments: object;
    }
  | { type: 'compaction'; id: string; encrypted_content: string }
  | McpListItem
  | McpCallItem
  | McpApprovalItem;

/** A tool of a server, as a list shows it. */
interface McpListedTool {
  name: string;
  description: string | null;
  input_schema: unknown;
  annotations: object | null;
}

export interface McpListItem {
  type: 'mcp_list_tools';
  id: string;
  server_label: string;
  tools: McpListedTool[];
  error: string | null;
}

/** A call that runs here. */
export interface McpCallItem {
  type: 'mcp_call';
  id: string;
  status: ItemStatus | 'calling' | 'failed';
  approval_request_id: string | null;
  server_label: string;
  name: string;
  arguments: string;
  output: string | null;
  error: string | null;
}

/** A call that waits for the client's approval. */
export interface McpApprovalItem {
  type: 'mcp_approval_request';
  id: string;
  server_label: string;
  name: string;
  arguments: string;
}

export interface ResponseUsage {
  input_tokens: number;
  /** Tokens found in the cache. Tokens written to it are not counted, since nothing is charged for them. */
  input_tokens_details: { cached_tokens: number; cache_write_tokens: 0; image_tokens?: number };
  output_tokens: number;
  output_tokens_details: { reasoning_tokens: number };
  total_tokens: number;
}

/** Counts of one or several passes of the engine. */
interface PassCounts {
  promptTokens: number;
  completionTokens: number;
  cachedTokens: number;
  imageTokens: number;
}

export function responseUsage(counts: PassCounts, reasoning_tokens: number): ResponseUsage {
  const { promptTokens: input, completionTokens: output, cachedTokens: cached_tokens } = counts;
  const { imageTokens: image_tokens } = counts;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens, cache_write_tokens: 0, ...(image_tokens > 0 && { image_tokens }) },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens },
    total_tokens: input + output,
  };
}

export type ResponseStatus = 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

/** Fields of a response that change while it is made. */
export interface ResponseState {
  status: ResponseStatus;
  output: readonly OutputItem[];
  /** The error, with one of OpenAI's codes. */
  error: { code: 'server_error' | 'rate_limit_exceeded' | 'invalid_prompt'; message: string } | null;
  incomplete_details: { reason: 'max_output_tokens'; stop_reason?: 'time_limit' } | null;
  usage: ResponseUsage | null;
  completed_at: number | null;
}

export type ResponseObject = ReturnType<typeof responseFields> & ResponseState;

type OfTools = 'fc' | 'ctc' | 'tsc' | 'tso' | 'at' | 'mcp' | 'mcpl' | 'mcpr' | 'mcpa';
type IdPrefix = 'resp' | 'msg' | 'item' | 'rs' | 'cmp' | 'ct' | OfTools;

/** A new id: `resp_` or the like with 192 random bits, since the id alone allows reading the response. */
export function newId(prefix: IdPrefix): string {
  return `${prefix}_${randomBytes(24).toString('hex')}`;
}

/** Fields of a response that come from its request, with defaults written out as OpenAI does. */
export function responseFields(
  request: ResponseRequest,
  { id: model, sampling = {} }: Pick<ServedGenerator, 'id' | 'sampling'>,
  id: string,
) {
  return {
    id,
    object: 'response' as const,
    created_at: Math.floor(Date.now() / 1000),
    model,
    background: request.background ?? false,
    conversation: conversationField(request),
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: request.max_tool_calls ?? null,
    metadata: request.metadata ?? {},
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: request.previous_response_id ?? null,
    prompt_cache_key: request.prompt_cache_key ?? null,
    reasoning: { effort: request.reasoning?.effort ?? null, summary: null },
    safety_identifier: request.safety_identifier ?? null,
    service_tier: 'default',
    store: request.store ?? true,
    temperature: request.temperature ?? sampling.temperature ?? 1,
    text: { format: textFormat(request), verbosity: request.text?.verbosity ?? 'medium' },
    tool_choice: request.tool_choice ?? 'auto',
    tools: shownTools(request.tools).map(toolField),
    top_logprobs: request.top_logprobs ?? 0,
    top_p: request.top_p ?? sampling.topP ?? 1,
    truncation: request.truncation ?? 'disabled',
    user: request.user ?? null,
  };
}

function conversationField({ conversation }: Pick<ResponseRequest, 'conversation'>) {
  return conversation === undefined ? null : { id: conversationId(conversation) };
}

export function conversationId(conversation: NonNullable<ResponseRequest['conversation']>): string {
  return typeof conversation === 'string' ? conversation : conversation.id;
}

function toolField(tool: KeptTool | McpTool): object {
  if (tool.type === 'mcp') return mcpField(tool);
  const { type, description = null } = tool;
  if (tool.type === 'tool_search')
    return { type, execution: tool.execution, description, parameters: tool.parameters ?? null };
  const { name } = tool;
  if (tool.type === 'namespace') return { type, name, description, tools: tool.tools.map(toolField) };
  if (tool.type === 'custom') return { type, name, description, format: tool.format ?? { type: 'text' } };
  return { type, name, description, parameters: tool.parameters ?? null, strict: isStrict(tool) };
}

/** Without what is for the server of tools alone. */
function mcpField({ type, server_label, ...tool }: McpTool): object {
  const { server_url, server_description, allowed_tools = null, require_approval = 'always' } = tool;
  return {
    type,
    server_label,
    server_url,
    server_description,
    allowed_tools,
    require_approval,
    headers: null,
  };
}

function textFormat({ text }: ResponseRequest) {
  const format = text?.format ?? { type: 'text' as const };
  if (format.type !== 'json_schema') return format;
  const { name, description, schema, strict } = format;
  return {
    type: format.type,
    name: name ?? null,
    description: description ?? null,
    schema,
    strict: strict ?? false,
  };
}
