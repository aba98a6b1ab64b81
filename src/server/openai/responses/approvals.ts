import type { AskedServer } from '../../answering/asked-servers.js';
import { ApiError } from '../../web/errors.js';
import type { Conversation } from './conversation.js';
import type { McpCallItem } from './response-object.js';

/** A call that the client has approved, and that was not run yet. */
export type ApprovedCall = Pick<McpCallItem, 'server_label' | 'name' | 'arguments'> & {
  approval_request_id: string;
};

/**
 * The calls that a request approves. One whose result is in the conversation already has been run, and is not run again.
 * @throws ApiError 400 for answers to what was never asked, and for calls of servers that the request does not name
 */
export function approvedCalls(
  { input, items }: Pick<Conversation, 'input' | 'items'>,
  servers: readonly AskedServer[],
): ApprovedCall[] {
  const approved = new Map<string, ApprovedCall>();
  for (const [index, item] of input.entries()) {
    if (item.type !== 'mcp_approval_response') continue;
    const { approval_request_id: id, approve } = item;
    const param = `input[${index}].approval_request_id`;
    const asked = items.find((one) => one.type === 'mcp_approval_request' && one.id === id);
    if (asked?.type !== 'mcp_approval_request') {
      const message = `'${param}' is '${id}', but no item of type mcp_approval_request in the conversation has this id.`;
      throw new ApiError(400, message, { param, code: 'item_not_found' });
    }
    const isRun = items.some((one) => one.type === 'mcp_call' && one.approval_request_id === id);
    if (!approve || isRun) continue;
    const { server_label, name, arguments: args } = asked;
    if (!servers.some(({ label }) => label === server_label)) {
      const message = `'${param}' approves a call of the MCP server '${server_label}', which is not among the 'tools' of the request.`;
      throw new ApiError(400, message, { param });
    }
    approved.set(id, { server_label, name, arguments: args, approval_request_id: id });
  }
  return [...approved.values()];
}
