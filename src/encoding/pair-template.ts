import { messageOf } from '../../base/error-text.js';
import { ChatTemplate } from '../../models/chat-template.js';
import type { ScoreHead } from '../../models/encoder-config.js';
import { type TextSegment, type Tokenizer, TokenizerError } from '../../models/tokenizer/index.js';

/**
 * The prompt of Qwen3-Reranker, as its card and its files for sentence-transformers have it, for models whose own chat template is still
 * that of conversations.
 */
const QWEN3_RERANKER = `<|im_start|>system
Judge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>
<|im_start|>user
<Instruct>: {{ messages | selectattr("role", "eq", "system") | map(attribute="content") | first | default("Given a web search query, retrieve relevant passages that answer the query") }}
<Query>: {{ messages | selectattr("role", "eq", "query") | map(attribute="content") | first }}
<Document>: {{ messages | selectattr("role", "eq", "document") | map(attribute="content") | first }}<|im_end|>
<|im_start|>assistant
<think>

</think>

`;
const QWEN3_MARK = '<|im_start|>';

/** A reranker's chat template, which takes a query and a document in place of a conversation. */
export class PairTemplate {
  readonly #template: ChatTemplate;
  readonly #instruction: string | null;
  /** Whether it has a place for what the system says: an instruction. */
  readonly takesInstruction: boolean;

  private constructor(source: string, tokenizer: Tokenizer, instruction: string | null) {
    this.#template = parsed(source, tokenizer);
    this.#instruction = instruction;
    this.takesInstruction = namesRole(source, 'system');
  }

  /**
   * The template of a model that scores; null: it takes pairs of texts as its tokenizer joins them.
   * @throws TokenizerError for a broken template, and for a model that scores by the logits of tokens and has no template for pairs
   */
  static of(source: string | null, tokenizer: Tokenizer, head: ScoreHead): PairTemplate | null {
    const instruction = head.instruction ?? null;
    const takes = source !== null && takesPairs(source);
    if (!takes && head.tokens === undefined) return null;
    if (takes) return tried(new PairTemplate(source, tokenizer, instruction));
    if (source !== null) parsed(source, tokenizer);
    if (tokenizer.controlTokenTexts.includes(QWEN3_MARK))
      return new PairTemplate(QWEN3_RERANKER, tokenizer, instruction);
    throw new TokenizerError(
      'The model scores pairs by the logits of tokens, but its chat template takes no messages of the roles query and document.',
    );
  }

  /**
   * The prompt of a pair: special tokens of the template are tokens, those that a text spells stay text.
   * @param asked an instruction in place of the model's own
   */
  render(query: string, document: string, asked?: string): readonly TextSegment[] {
    const instruction = asked ?? this.#instruction;
    const system = instruction === null ? [] : [{ role: 'system', content: instruction }];
    const messages = [...system, { role: 'query', content: query }, { role: 'document', content: document }];
    return this.#template.render(messages).segments;
  }
}

/** @throws TokenizerError for an invalid Jinja template, whatever it takes */
function parsed(source: string, tokenizer: Tokenizer): ChatTemplate {
  try {
    return new ChatTemplate(source, tokenizer);
  } catch (error) {
    throw broken(error);
  }
}

/** Renders a pair of short texts, so that a template that renders none is refused when the model is loaded. */
function tried(template: PairTemplate): PairTemplate {
  try {
    template.render('a', 'b');
    return template;
  } catch (error) {
    throw broken(error);
  }
}

const broken = (error: unknown) =>
  new TokenizerError(`The model scores pairs by its chat template, which is broken: ${messageOf(error)}`);

const namesRole = (source: string, role: string) => new RegExp(`(['"])${role}\\1`).test(source);

const takesPairs = (source: string) => namesRole(source, 'query') && namesRole(source, 'document');
