import * as z from 'zod';
import { about, ignored, notSupported, optional } from '../../../schemas/fields.js';

/** Most names of tools in a list. */
const MAX_NAMES = 512;
/** Most headers for a server, and characters of one, of a token and of an address. */
const MAX_HEADERS = 32;
const MAX_VALUE = 8192;
/** Headers that are the connection's own. */
const OWN_HEADERS =
  /^(host|connection|content-.*|transfer-.*|accept.*|mcp-.*|cookie2?|te|trailer|upgrade|expect)$/i;

const toolNames = z.array(z.string().max(128)).max(MAX_NAMES);
const filter = z.object({
  tool_names: optional(toolNames, 'Tools by their names.'),
  read_only: optional(
    z.boolean(),
    'Tools that their server marks as read-only (readOnlyHint), or those that it does not.',
  ),
});

export type ToolFilter = z.output<typeof filter>;

const headers = z
  .record(
    z.string().regex(/^[\w!#$%&'*+.^`|~-]{1,128}$/, 'expected the name of a header'),
    z
      .string()
      .max(MAX_VALUE)
      .regex(/^[\t\x20-\x7e]*$/, 'expected the printable ASCII of a header'),
  )
  .refine((given) => Object.keys(given).length <= MAX_HEADERS, {
    error: `expected at most ${MAX_HEADERS} headers`,
  })
  .refine((given) => !Object.keys(given).some((name) => OWN_HEADERS.test(name)), {
    error: 'expected headers other than those of the connection itself',
  });

/** A server of tools in a request: the server asks it, and runs its tools. */
export const mcpTool = z.object({
  type: z.literal('mcp'),
  server_label: about(
    z.string().regex(/^[a-zA-Z][\w-]{0,62}$/, 'expected a letter and up to 62 letters, digits, - and _'),
    'Its name in the answer. Without server_url: the NAME of an --mcp-server.',
  ),
  server_url: optional(z.string().max(MAX_VALUE), 'Its address, which has to be that of an --mcp-server.'),
  server_description: optional(
    z.string().max(16_384),
    'What it is for; the model reads it with its first tool.',
  ),
  allowed_tools: optional(
    z.union([toolNames, filter], {
      error: 'expected a list of names, or {"tool_names": ..., "read_only": ...}',
    }),
    'The only tools that may be called.',
  ),
  require_approval: optional(
    z.union(
      [
        z.enum(['always', 'never']),
        z.object({
          always: optional(filter, 'Tools whose calls the client has to approve.'),
          never: optional(filter, 'Tools whose calls run at once.'),
        }),
      ],
      {
        error:
          'expected \'always\', \'never\' or {"always": {"tool_names": ...}, "never": {"tool_names": ...}}',
      },
    ),
    "Whether a call waits for the client's approval. Default: 'always'. Of an object, tools that neither list names wait, unless only 'always' is given.",
  ),
  authorization: optional(
    z
      .string()
      .min(1)
      .max(MAX_VALUE)
      .regex(/^[\x21-\x7e]+$/, 'expected a token'),
    'Token that is sent to this server alone (Authorization: Bearer); it is neither kept nor given back.',
  ),
  headers: optional(
    headers,
    'Headers that are sent to this server alone; they are neither kept nor given back.',
  ),
  connector_id: notSupported("connectors of OpenAI's own"),
  tunnel_id: notSupported("tunnels of OpenAI's own"),
  defer_loading: ignored('Accepted; the model is told of every tool at once.'),
  allowed_callers: notSupported('programs that call tools', ['direct'], ['direct', 'programmatic'], []),
});

export type McpTool = z.output<typeof mcpTool>;
