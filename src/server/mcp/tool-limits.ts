/** Bounds of what a server of tools may cost. */
export const TOOL_LIMITS = {
  /** Tools of one server that a request may have. */
  tools: 512,
  /** Length of these tools: that of their texts, and 32 for each value. */
  toolUnits: 2 ** 20,
  /** Pages of a list of tools. */
  pages: 64,
  /** Bytes of one answer of a server, decoded. */
  answerBytes: 1024 * 1024,
  /** Levels of a tool's schema. */
  schemaLevels: 64,
  /** Characters of a tool's description. */
  descriptionLength: 16_384,
  /** Milliseconds in which a server has to list its tools. */
  listMs: 10_000,
  /** Milliseconds for which a list is kept. */
  listKeptMs: 300_000,
  /** Lists that are kept. */
  listsKept: 32,
} as const;
