import type { ChatMessage } from '../../../models/chat-template.js';

/** A task for a model, with the beginning of its answer, by which a small model stays at the task. */
export interface Task {
  messages: ChatMessage[];
  maxTokens: number;
}

const CODE = `class ShoppingCart:
    def __init__(self, customer, currency="EUR"):
        self.customer = customer
        self.currency = currency
        self.items = []

    def add_item(self, name, price, quantity=1):
        if price < 0:
            raise ValueError("The price must not be negative.")
        self.items.append({"name": name, "price": price, "quantity": quantity})

    def remove_item(self, name):
        self.items = [item for item in self.items if item["name"] != name]

    def total(self):
        result = 0
        for item in self.items:
            result += item["price"] * item["quantity"]
        return result

    def describe(self):
        lines = [f"Cart of {self.customer}:"]
        for item in self.items:
            lines.append(f"- {item['quantity']} x {item['name']} at {item['price']} {self.currency}")
        lines.append(f"Total: {self.total()} {self.currency}")
        return "\\n".join(lines)
`;

const QUERY = `function loadOrders(database, customerId, limit) {
  const rows = database.query("SELECT id, total, created_at FROM orders WHERE customer_id = ?", [customerId]);
  const orders = [];
  for (const row of rows) {
    if (orders.length >= limit) break;
    orders.push({ id: row.id, total: Number(row.total), createdAt: new Date(row.created_at) });
  }
  orders.sort((a, b) => b.createdAt - a.createdAt);
  return orders;
}

function sumOrders(orders) {
  let sum = 0;
  for (const order of orders) {
    sum += order.total;
  }
  return sum;
}
`;

const ARTICLE = `The Great Barrier Reef is the world's largest coral reef system, composed of over 2,900 individual reefs and 900 islands stretching for over 2,300 kilometres. The reef is located in the Coral Sea, off the coast of Queensland, Australia. It can be seen from outer space and is the world's biggest single structure made by living organisms. This reef structure is composed of and built by billions of tiny organisms, known as coral polyps. It supports a wide diversity of life and was selected as a World Heritage Site in 1981. A large part of the reef is protected by the Great Barrier Reef Marine Park, which helps to limit the impact of human use, such as fishing and tourism. Other environmental pressures on the reef and its ecosystem include runoff, climate change accompanied by mass coral bleaching, and cyclic population outbreaks of the crown-of-thorns starfish. According to a study published in October 2012, the reef has lost more than half its coral cover since 1985.`;

const MINUTES = `Minutes of the meeting of 12 March. Present: Anna Keller, Tom Brandt, Maria Lopez, David Chen. Anna Keller opened the meeting at 9:30 and asked for reports. Tom Brandt reported that the new warehouse in Hamburg will open on 1 June and that twelve of the twenty positions have been filled. Maria Lopez reported that sales rose by eight percent in February, mainly because of the new catalogue. David Chen warned that the delivery of packing machines is late by four weeks and that the supplier offers a discount of five percent. It was decided to accept the discount, to rent two machines until May, and to move the staff training to 20 May. Maria Lopez will prepare the budget for the summer campaign by 2 April. The next meeting will take place on 9 April at 9:30.`;

const edit = (instruction: string, language: string, code: string): Task => ({
  messages: [
    { role: 'user', content: `${instruction} Give back the whole code.\n\n\`\`\`${language}\n${code}\`\`\`` },
    { role: 'assistant', content: `Here is the whole code:\n\n\`\`\`${language}\n` },
  ],
  maxTokens: 256,
});

const quote = (instruction: string, text: string, beginning: string): Task => ({
  messages: [
    { role: 'user', content: `${instruction}\n\n${text}` },
    { role: 'assistant', content: beginning },
  ],
  maxTokens: 160,
});

/** Answers that repeat much of their prompt. */
export const EDITS: readonly Task[] = [
  edit('Rename the method describe of this class to summary.', 'python', CODE),
  edit('Rename the variable orders to result.', 'javascript', QUERY),
  edit('Add a docstring to the method total.', 'python', CODE),
];

export const SUMMARIES: readonly Task[] = [
  quote(
    'Summarise this text by quoting its three most important sentences.',
    ARTICLE,
    'The three most important sentences are:\n\n1. "',
  ),
  quote('Summarise these minutes as a list of who reported what.', MINUTES, 'Here is the list:\n\n- '),
  quote('Summarise this text in a few sentences.', ARTICLE, ''),
];
