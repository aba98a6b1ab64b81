/** A call of a tool in an answer. Of one that was neither run nor refused, output and error are null. */
export interface ToolCall {
  server: string;
  name: string;
  /** JSON, as the model wrote it. */
  arguments: string;
  /** What it gave; null: nothing. */
  output: string | null;
  /** Why it gave nothing; null: it did. */
  error: string | null;
  /** True where the reader did not let it run. */
  isDenied: boolean;
}

/** Items of a response that the page reads or sends. */
export type ResponseItem =
  | { type: 'message'; role: 'user' | 'assistant'; content: unknown }
  | { type: 'mcp_approval_request'; id: string; server_label: string; name: string; arguments: string }
  | { type: 'mcp_approval_response'; approval_request_id: string; approve: boolean }
  | {
      type: 'mcp_call';
      id?: string;
      server_label: string;
      name: string;
      arguments: string;
      approval_request_id?: string | null;
      output?: string | null;
      error?: string | null;
    }
  | { type: 'reasoning' | 'mcp_list_tools'; error?: string | null };

export type ApprovalRequest = Extract<ResponseItem, { type: 'mcp_approval_request' }>;
export type CallItem = Extract<ResponseItem, { type: 'mcp_call' }>;
