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

/** A reranker's chat template, which takes a query and a document in the place of a conversation. */
export class PairTemplate {
  readonly #template: ChatTemplate;
  readonly #instruction: string | null;

  private constructor(template: ChatTemplate, instruction: string | null) {
    this.#template = template;
    this.#instruction = instruction;
  }

  /**
   * The template of a model that scores; null: it takes pairs of texts as its tokenizer joins them.
   * @throws TokenizerError for a broken template, and for a model that scores by the logits of tokens and has no template for pairs
   */
  static of(source: string | null, tokenizer: Tokenizer, head: ScoreHead): PairTemplate | null {
    const instruction = head.instruction ?? null;
    const takes = source !== null && takesPairs(source);
    if (!takes && head.tokens === undefined) return null;
    const own = source === null ? null : parsed(source, tokenizer);
    if (takes) return tried(new PairTemplate(own!, instruction));
    if (tokenizer.controlTokenTexts.includes(QWEN3_MARK))
      return new PairTemplate(new ChatTemplate(QWEN3_RERANKER, tokenizer), instruction);
    throw new TokenizerError(
      'The model scores pairs by the logits of tokens, but its chat template takes no messages of the roles query and document.',
    );
  }

  /** The prompt of a pair: special tokens of the template are tokens, those that a text spells stay text. */
  render(query: string, document: string): readonly TextSegment[] {
    const system = this.#instruction === null ? [] : [{ role: 'system', content: this.#instruction }];
    const messages = [...system, { role: 'query', content: query }, { role: 'document', content: document }];
    return this.#template.render(messages).segments;
  }
}

/** @throws TokenizerError for a template that is no Jinja, whatever it takes */
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

const takesPairs = (source: string) => /(['"])query\1/.test(source) && /(['"])document\1/.test(source);
