/** The template's words for how much is reasoned, by those of the APIs. */
const EFFORTS: ReadonlyMap<string, string> = new Map([
  ['minimal', 'low'],
  ['low', 'low'],
  ['medium', 'medium'],
  ['high', 'high'],
  ['xhigh', 'high'],
  ['max', 'high'],
]);

/**
 * Template variables with the effort. Models of this format always reason, and nothing here runs the tools that they bring along.
 * @param refuse called with the name and the reason
 */
export function harmonyEffort(
  effort: string | undefined,
  variables: Record<string, unknown>,
  refuse: (param: string, reason: string) => never,
): Record<string, unknown> {
  const { builtin_tools: tools } = variables;
  if (tools != null && !(Array.isArray(tools) && tools.length === 0)) {
    const reason = "the model's own browser and python are not run here: describe such tools as functions";
    return refuse('chat_template_kwargs.builtin_tools', reason);
  }
  if (effort === undefined) return variables;
  const word = EFFORTS.get(effort);
  if (word === undefined)
    return refuse('reasoning_effort', 'this model always reasons, with an effort of low, medium or high');
  return { reasoning_effort: word, ...variables };
}
