"""Prompts to train on: templates and topics, seven categories in equal shares, drawn from a seed.

The held-out prompts (`held_out.txt`) are no part of this: other topics, other wordings.
Summarising and rewriting need texts; they come from what the target wrote in earlier batches.
"""

from __future__ import annotations

import random

__all__ = ["CATEGORIES", "draw"]

CATEGORIES = ("chat", "question answering", "explanation", "story", "summarising", "rewriting", "code")

PARTS = {
    "topic": """
tides; glaciers; lightning; the seasons; magnetism; the immune system; memory; digestion; photosynthesis; erosion;
evolution; probability; fractions; prime numbers; the calendar; maps; printing; paper money; trade; taxes;
democracy; the constitution; the Roman Republic; the Industrial Revolution; the Cold War; the Silk Road; the
Olympics; jazz; opera; the violin; watercolours; sculpture; film editing; photography; poetry; theatre; fashion;
architecture; bridges; steam engines; jet engines; bicycles; elevators; clocks; batteries; solar power; wind
turbines; dams; nuclear power; recycling; plastic; steel; glass; concrete; cotton; bread; cheese; chocolate; coffee;
tea; spices; honey; vitamins; sleep; stress; exercise; vaccines; antibiotics; blood pressure; eyesight; hearing;
bees; ants; whales; octopuses; owls; elephants; wolves; dogs; cats; coral reefs; rainforests; deserts; rivers;
volcanoes; earthquakes; comets; the Moon; Mars; black holes; galaxies; telescopes; satellites; rockets; computers;
the internet; search engines; encryption; machine learning; robots; video games; databases; programming languages;
operating systems; smartphones; e-mail; social media; advertising; insurance; banks; inflation; the stock market;
supply chains; small businesses; unions; schools; libraries; museums; languages; translation; handwriting; public
speaking; teamwork; leadership; friendship; time zones; traffic; trains; ships; airports; gardens; soil; forests;
mushrooms; rice; olive oil; salt; ice cream; Ancient Egypt; the Vikings; the Renaissance; Japan; India; Brazil;
Kenya; Canada; Italy; Norway; Mexico; Australia""",
    "person": """
Albert Einstein; Marie Curie; Isaac Newton; Charles Darwin; Galileo Galilei; Nikola Tesla; Alan Turing; Grace
Hopper; Leonardo da Vinci; Frida Kahlo; Vincent van Gogh; Mozart; Beethoven; Shakespeare; Jane Austen; Homer;
Aristotle; Confucius; Cleopatra; Julius Caesar; Joan of Arc; Napoleon; Abraham Lincoln; Gandhi; Nelson Mandela;
Florence Nightingale; Louis Pasteur; Thomas Edison; Johannes Gutenberg; Amelia Earhart; Neil Armstrong; Rosa Parks""",
    "country": """
France; Spain; Germany; Poland; Greece; Turkey; Egypt; Morocco; Nigeria; South Africa; Ethiopia; China; Vietnam;
Thailand; Indonesia; South Korea; Nepal; Iran; Argentina; Chile; Peru; Colombia; Cuba; Ireland; Scotland; Sweden;
Finland; Denmark; Austria; Switzerland; Hungary; Ukraine; New Zealand; the Philippines; Pakistan""",
    "figure": """
a tired postman; a young inventor; a clumsy wizard; a talking river; an old bear; a lonely robot; two sisters; a
retired pirate; a curious goat; a village doctor; a prince who cannot sleep; a shy ghost; a travelling musician; a
baker's daughter; an astronaut; a fox and a crow; a lost kitten; a dragon who collects books; a blind fisherman; a
queen's messenger; a new student; a chess champion; a firefighter; a grandfather; a snowman; a street artist; a
brave duckling; a spy; a farmer and his horse; an ambitious squirrel; the last tree in a city; a night watchman""",
    "place": """
a small island; a crowded market; a deserted railway station; a forest after rain; a mountain hut; a library; a
spaceship; a castle; a school; a quiet harbour; an old theatre; a desert town; a kitchen; a snowy village; a big
city""",
    "somebody": """
my sister; my boss; a friend; my neighbour; a teacher; a customer; my grandmother; a new colleague; a landlord; my
team; a class of children; an old school friend; a doctor; a shop; my parents; a teenager; a beginner; a tourist""",
    "activity": """
learning French; running; cooking at home; saving money; reading more; writing a diary; playing the piano; swimming;
studying mathematics; working from home; waking up early; drawing; growing tomatoes; hiking; meditating; looking for
a job; giving a talk; planning a wedding; moving house; training a dog; eating less sugar; learning to code; fixing
a bicycle; organising a party; teaching children; travelling alone; painting a room; making new friends""",
    "food": """
chicken; rice; pasta; lentils; potatoes; eggs; spinach; salmon; tofu; mushrooms; chickpeas; apples; oats; pumpkin;
beans; cabbage; carrots; bananas; yoghurt; noodles""",
    "task": """
reverses a string; checks whether a number is prime; computes a factorial; returns the n-th Fibonacci number; counts
the words of a text; finds the largest value in a list; removes duplicates from a list; sorts a list of tuples by
the second value; checks whether a word is a palindrome; counts vowels; adds two matrices; reads a CSV file; writes
a list to a file; merges two sorted lists; flattens a nested list; computes the mean and the median; finds the
longest word; converts Celsius to Fahrenheit; prints a multiplication table; checks whether two words are anagrams;
makes a random password; counts letters; rotates a list; performs a binary search; computes the greatest common
divisor; groups words by their first letter; splits a list into pieces of size n; capitalises every word; validates
an e-mail address; computes the area of a triangle; converts a number to binary; finds missing numbers in a range;
parses a date; downloads a web page; sums the digits of a number; replaces spaces by underscores; simulates a dice
roll; draws a pyramid of stars; counts down from ten; finds common elements of two sets; computes compound interest;
checks whether brackets are balanced; transposes a matrix; removes punctuation; lists all files in a folder; zips
two lists into a dictionary; times a function""",
    "language": "Python; Python; Python; JavaScript; Java; C; C++; Go; Ruby; Bash",
    "thing": """
a queue; a stack; a linked list; a bank account; a shopping cart; a playing card; a rectangle; a student; a library;
a to-do list; a temperature sensor; a binary tree; a timer; a game of tic-tac-toe; an address book; a car""",
    "idea": """
a variable; a loop; a function; recursion; a class; inheritance; a dictionary; a list; a tuple; a set; an exception;
a decorator; a generator; a pointer; an array; a hash table; a thread; an API; a unit test; a regular expression; a
module""",
    "page": """
a navigation bar; a contact form; a table of prices; a photo gallery; a blue button; a login page; a footer; a list
of links; a recipe; a calendar; a weather report""",
    "number": "; ".join(str(n) for n in range(3, 99)),
    "query": """
all customers from Berlin; the three cheapest products; employees hired last year; orders over 100 dollars; the
average age of students; the number of books for each author; users who never logged in""",
}

TEMPLATES = {
    "chat": """
Hello!; Hi, who are you?; Good evening. How are you?; What can you help me with?; Tell me a joke about {topic}.; I
feel tired today. What can I do?; Give me some advice on {activity}.; How do I get started with {activity}?; How can
I enjoy {activity} more?; I want to stop {activity}. What do you think?; What should I cook with {food} and {food}?;
Give me a simple recipe with {food}.; Plan a day in {country} for me.; What should I pack for {country}?; Write an
e-mail to {somebody} about {activity}.; Write a thank-you note to {somebody}.; Help me apologise to {somebody}.;
Suggest a birthday present for {somebody}.; What is a good question to ask {somebody}?; I had a quarrel with
{somebody}.; Give me five ideas for {activity}.; Make a weekly plan for {activity}.; Let us talk about {topic}.; Why
do people like {topic}?; Which book about {topic} should I read?; Motivate me for {activity}.; What do you know
about {topic}?; I am nervous about {activity}. Please help.; Tell me something surprising about {topic}.; Compare
{activity} and {activity}.; What is better for a beginner, {activity} or {activity}?; Invent a slogan for {topic}.""",
    "question answering": """
What is the capital of {country}?; Which language is spoken in {country}?; Where is {country}?; Name four cities in
{country}.; What is {country} known for?; What is the climate of {country} like?; Who was {person}?; What is
{person} famous for?; When did {person} live?; Where was {person} born?; What did {person} achieve?; What is
{number} plus {number}?; What is {number} times {number}?; What is {number} minus {number}?; Is {number} a prime
number?; How many hours are in {number} days?; A ticket costs {number} dollars. What do {number} cost?; Who
discovered {topic}?; When did {topic} begin?; What are the parts of {topic}?; Is {topic} dangerous?; What is the
main purpose of {topic}?; Where can you find {topic}?; What is the opposite of hot?; How many legs has an ant?;
Which metal is liquid at room temperature?; What is the largest planet?; How many strings has a violin?; True or
false: {country} is in Europe.; Which is older, {topic} or {topic}?; What does the word {topic} mean?""",
    "explanation": """
Explain {topic}.; Explain {topic} to a child.; How does {topic} work?; Why is {topic} important?; Give an overview
of {topic}.; What is the history of {topic}?; What should everybody know about {topic}?; Describe {topic} in a few
sentences.; What is the difference between {topic} and {topic}?; Write an essay about {topic}.; What are the
benefits of {topic}?; What problems does {topic} cause?; List six facts about {topic}.; How did {topic} change the
world?; What would happen without {topic}?; How are {topic} and {topic} related?; Explain step by step how {topic}
came about.; What are the pros and cons of {topic}?; Define {topic} and give examples.; What are common mistakes
when people talk about {topic}?; Give a short lecture on {topic}.""",
    "story": """
Write a story about {figure}.; Tell me a tale about {figure} in {place}.; Write a poem about {topic}.; Write a poem
about {figure}.; Write the first page of a novel set in {place}.; Write a dialogue between {figure} and {figure}.;
Tell a bedtime story about {figure}.; Write a funny scene in {place}.; Write a fable with {figure} and {figure}.;
Write a detective story that begins in {place}.; Describe {place} at dawn.; Write a diary entry of {figure}.; Write
a haiku about {topic}.; Write a limerick about {figure}.; Write a science fiction story about {topic}.; Write a
letter from {figure} to {figure}.; What happens when {figure} meets {figure} in {place}? Tell the story.""",
    "summarising": """
Summarise this text:|{text};; Summarize the following passage in two sentences.||{text};; What is this text
about?|{text};; TL;DR: {text};; Give the key points of the following text as a list.||{text};; Write a headline for
this text: {text};; {text}||Summarize the above.;; Shorten this to one sentence: {text};; Read the text and say what
matters most.||Text: {text};; What are the main arguments here?||{text}""",
    "rewriting": """
Rewrite this in plain words: {text};; Paraphrase this text.||{text};; Correct the mistakes in this text:|{text};;
Rewrite this more formally: {text};; Rewrite this so that it sounds friendly:|{text};; Turn this into a list:
{text};; Rewrite the passage in the past tense.||{text};; Make this shorter: {text};; Make this more lively:
{text};; Rewrite this for a child.||{text};; Improve this paragraph: {text};; Repeat this text word for word:
{text};; Copy the text and replace every name by X:|{text};; Translate this into simple English: {text}""",
    "code": """
Write a {language} function that {task}.; Write {language} code that {task}.; Write a {language} program that {task}
and explain it.; Show me how to write code that {task} in {language}.; Write a Python function that {task}, with a
docstring.; Write a Python function that {task} and tests for it.; Write a Python class for {thing}.; Implement
{thing} in {language}.; What is {idea} in {language}?; Explain {idea} with an example in Python.; When would I use
{idea} rather than {idea}?; Write HTML for {page}.; Write HTML and CSS for {page}.; Write an SQL query that finds
{query}.; Write a Bash script that {task}.; Write a regular expression for {topic} in a text, and explain it.; Give
me pseudocode that {task}.""",
}

SHORT = """me and my brother goes to school by bus every days; pls send the files asap, boss is waiting!!;
The shop will be closed on Monday because the owner is on holiday.; She dont know where are the keys of the car.;
We regret to inform you that the event has been cancelled.; he have a dog what likes to swimming in the lake;
Thank you for your order. It will arrive in three to five days.; The test failed twice, so we replaced the cable.;
i cant come tomorow, my train was cancel; The children were playing outside when it suddenly began to snow.;
Their is many reasons why the people likes music; Please turn off the lights when you leave the room.;
Our new phone has a bigger screen, a better camera and a battery that lasts two days.;
In my opinion the film was too long and the ending did not make any sense."""


def draw(rng: random.Random, n_each: int, texts: list[str]) -> list[tuple[str, str]]:
    """`n_each` prompts of every category as (category, prompt); `texts` are passages to summarise and rewrite.

    While there are few texts, summarising and rewriting use the short ones alone.
    """
    return [(category, _fill(rng, category, texts)) for category in CATEGORIES for _ in range(n_each)]


def _fill(rng: random.Random, category: str, texts: list[str]) -> str:
    with_text = category in ("summarising", "rewriting")
    prompt = rng.choice(_items(TEMPLATES[category], ";;" if with_text else ";"))
    if with_text:
        short = len(texts) < 20 or (category == "rewriting" and rng.random() < 0.25)
        text = rng.choice(_items(SHORT, ";")) if short else rng.choice(texts)
        return prompt.replace("|", "\n").replace("{text}", text)
    for name in PARTS:
        while f"{{{name}}}" in prompt:
            prompt = prompt.replace(f"{{{name}}}", rng.choice(_items(PARTS[name], ";")), 1)
    return prompt


def _items(text: str, separator: str) -> list[str]:
    return [" ".join(item.split()) for item in text.split(separator)]
