import { MAX_KEPT_MESSAGES, sealedState } from '../../src/server/openai/responses/compaction-state.js';
import { REASONING_SEAL } from '../../src/server/openai/responses/sealed.js';

/** An item of a conversation as a client sends it. */
export type DearItem = Readonly<{ type: string } & Record<string, unknown>>;

const MEGABYTE = 2 ** 20;
const long = (megabytes: number) => 'x'.repeat(megabytes * MEGABYTE);
const times = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, i) => make(i));

const parts = times(3000, () => ({ type: 'input_text', text: 'a' }));
const tool = (index: number) => ({ type: 'function', name: `tool_${index}` });
const properties = Object.fromEntries(times(2000, (index) => [`p${index}`, { type: 'string' }]));
/** Lists of tools: many, many in one namespace, one with a wide schema, one with a long description. */
const toolLists = [
  times(500, tool),
  [{ type: 'namespace', name: 'many', tools: times(500, tool) }],
  [{ ...tool(0), parameters: { type: 'object', properties } }],
  [{ ...tool(0), description: 'x'.repeat(MEGABYTE - 1024) }],
];
const call = { call_id: 'call', name: 'f' };
const kept = times(MAX_KEPT_MESSAGES / 2, () => ({ role: 'user' as const, text: 'a' }));

/** The most expensive items of each type that is stored. */
export const DEAR_ITEMS: Readonly<Record<string, readonly DearItem[]>> = {
  message: [
    { type: 'message', role: 'user', content: long(4) },
    { type: 'message', role: 'user', content: 'a' },
    {
      type: 'message',
      role: 'assistant',
      content: parts.map(({ text }) => ({ type: 'output_text', text, annotations: [] })),
    },
    {
      type: 'message',
      role: 'user',
      content: [{ type: 'input_image', image_url: `data:;base64,Qk1Q${long(4)}` }],
    },
    {
      type: 'message',
      role: 'user',
      content: times(3000, () => ({ type: 'input_image', file_id: 'file-1' })),
    },
  ],
  function_call: [{ type: 'function_call', ...call, arguments: long(4) }],
  function_call_output: [{ type: 'function_call_output', call_id: 'call', output: parts }],
  custom_tool_call: [{ type: 'custom_tool_call', ...call, input: '"\u0001'.repeat(MEGABYTE) }],
  custom_tool_call_output: [{ type: 'custom_tool_call_output', call_id: 'call', output: long(4) }],
  reasoning: [
    { type: 'reasoning', content: [{ type: 'reasoning_text', text: long(8) }] },
    { type: 'reasoning', encrypted_content: REASONING_SEAL.seal(long(5)) },
    { type: 'reasoning', content: times(3000, () => ({ type: 'reasoning_text', text: 'a' })) },
  ],
  tool_search_call: [
    { type: 'tool_search_call', call_id: 'call', arguments: times(12, () => times(4090, () => 1)) },
    { type: 'tool_search_call', call_id: 'call', arguments: { a: long(4) } },
  ],
  tool_search_output: toolLists.map((tools) => ({ type: 'tool_search_output', call_id: 'call', tools })),
  additional_tools: toolLists.map((tools) => ({ type: 'additional_tools', tools })),
  // It stands for all items of hosted tools, which one schema takes.
  web_search_call: [
    { type: 'web_search_call', results: long(8) },
    { type: 'web_search_call', action: times(12, () => times(4090, () => 1)) },
  ],
  mcp_list_tools: [
    {
      type: 'mcp_list_tools',
      server_label: 's',
      tools: times(500, (i) => ({ name: `t${i}`, input_schema: {} })),
    },
    { type: 'mcp_list_tools', server_label: 's', tools: [{ name: 't', input_schema: { properties } }] },
  ],
  mcp_call: [
    { type: 'mcp_call', server_label: 's', name: 't', arguments: '{}', output: long(8) },
    { type: 'mcp_call', server_label: 's', name: 't', arguments: JSON.stringify({ a: long(4) }) },
  ],
  mcp_approval_request: [{ type: 'mcp_approval_request', server_label: 's', name: 't', arguments: long(8) }],
  mcp_approval_response: [
    { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true, reason: long(8) },
  ],
  compaction: [
    sealedState({ summary: long(6), before: null, after: [] }),
    sealedState({ summary: 'a', before: kept, after: kept }),
    sealedState({ summary: 'a', before: null, after: [...kept, ...kept] }),
  ].map((encrypted_content) => ({ type: 'compaction', encrypted_content })),
};

/** Types of items that are not stored. */
export const PASSING_ITEMS = ['compaction_trigger', 'item_reference'];
