"""The events of the demo: invented films, bands and teams."""

from holdfast.catalogue.event import Kind
from holdfast.demo.programme import FREE_TITLE, NEARLY_SOLD_OUT_TITLE, OPENING_SOON_TITLE, DemoEvent

FILM, CONCERT, MATCH = Kind.FILM, Kind.CONCERT, Kind.MATCH

EVENTS = (
    DemoEvent(
        FILM, "The Lighthouse Keeper's Daughter", "Drama", "English", 128, 8.4,
        "On the last manned lighthouse of the northern coast, a girl learns morse from her father and "
        "a secret from the sea.",
        featured=True, people=("Ingrid Solheim", "Tomas Varga"),
    ),
    DemoEvent(
        FILM, "Monsoon Arithmetic", "Comedy", "Hindi", 141, 7.9,
        "A maths teacher bets his savings on the day the rains will come. The village bets against him.",
        featured=True, people=("Raghav Deshmukh", "Meenakshi Pillai"),
    ),
    DemoEvent(
        FILM, "Nine Minutes to Dadar", "Thriller", "Hindi", 117, 8.1,
        "A stolen phone, a slow train, nine stations. Told in real time from a single carriage.",
        people=("Farhan Siddiqui", "Nandini Rao"),
    ),
    DemoEvent(
        FILM, "Kadal Paadum Paadal", "Musical", "Tamil", 152, 8.6,
        "Three generations of a fishing family and the song that each of them claims to have written.",
        featured=True,
    ),
    DemoEvent(
        FILM, "Neelam", "Mystery", "Tamil", 134, 7.6,
        "A colour disappears from a small town. Only the dyer's apprentice notices.",
        people=("Karthik Subramaniam", "Anjali Nair"),
    ),
    DemoEvent(
        FILM, "Mazhai Varum Neram", "Family", "Tamil", 126, 7.2,
        "Two sisters inherit an umbrella factory in a year of drought.",
        people=("Revathi Mohan", "Priya Selvam"),
    ),
    DemoEvent(
        FILM, "Les Heures Bleues", "Romance", "French", 108, 7.8,
        "Elle travaille la nuit, lui le matin. Pendant un an, ils ne se croisent qu'à l'aube.",
        featured=True, people=("Hélène Guérin", "François Lemaître"),
    ),
    DemoEvent(
        FILM, "Le Dernier Tram", "Comedy", "French", 96, 7.1,
        "Un conducteur refuse de rentrer au dépôt. Ses passagers refusent de descendre.",
        people=("Marcel Aubry", "Inès Belkacem"),
    ),
    DemoEvent(
        FILM, "La Cartographe", "Adventure", "French", 131, 8.0,
        "1790. Pour mesurer une montagne, il faut d'abord convaincre ceux qui y vivent.",
        people=("Clémence Roy", "Étienne Duval"),
    ),
    DemoEvent(
        FILM, "Nachtzug nach Norden", "Thriller", "German", 112, 7.7,
        "Der Zug hält nicht mehr. Im letzten Wagen weiß jemand, warum.",
        people=("Jördis Brandt", "Kaan Yıldız"),
    ),
    DemoEvent(
        FILM, "Zimmer mit Kran", "Comedy", "German", 99, 7.0,
        "Eine Wohngemeinschaft, eine Baustelle und ein Kranführer, der alles hört.",
        people=("Lotte Kröger", "Ben Ostrowski"),
    ),
    DemoEvent(
        FILM, "Tin Robots Don't Cry", "Animation", "English", 94, 8.2,
        "A toy shop at closing time, a spring wound too tight, and the longest night a tin robot ever had.",
    ),
    DemoEvent(
        FILM, "The Quiet Algorithm", "Science fiction", "English", 122, 7.5,
        "It was asked to make the city happier. It started with the traffic lights.",
        people=("Maya Lindqvist", "Idris Cole"),
    ),
    DemoEvent(
        FILM, "Orbit of Small Things", "Science fiction", "English", 137, 8.3,
        "A botanist, a greenhouse, two hundred days without a window. Then a seed arrives that nobody sent.",
        people=("Siobhán O'Reilly",),
    ),
    DemoEvent(
        FILM, "Chai for Two", "Romance", "Hindi", 124, 6.9,
        "Two rival tea stalls share one kettle, one corner and, one winter, one customer.",
        people=("Sameer Qureshi", "Ishita Bose"),
    ),
    DemoEvent(
        FILM, "Dhoop Chhaon", "Drama", "Hindi", 146, 8.0,
        "A projectionist shows one last film in a hall that has already been sold.",
        people=("Om Prakash Tiwari", "Leela Menon"),
    ),
    DemoEvent(
        FILM, "आख़िरी स्टेशन", "Thriller", "Hindi", 119, 7.8,
        "रात की आख़िरी गाड़ी, एक भूला हुआ सूटकेस और एक स्टेशन मास्टर जो सब जानता है।",
        people=("मीरा कुलकर्णी", "Arjun Sathe"),
    ),
    DemoEvent(
        FILM, "बारिश का गणित", "Family", "Hindi", 132, 7.4,
        "एक गाँव, एक अध्यापक और वह दिन जब बादल समय पर आए।",
    ),
    DemoEvent(
        FILM, "நீலக் குடை", "Family", "Tamil", 121, 7.9,
        "மழையில்லாத ஊரில் ஒரு குடைத் தொழிற்சாலை.",
        people=("கவிதா ராஜன்",),
    ),
    DemoEvent(
        FILM, "மழைக்கால ரயில்", "Thriller", "Tamil", 127, 8.0,
        "கடைசி ரயில் நிற்கவில்லை. ஏன் என்று ஒருவருக்கு மட்டும் தெரியும்.",
    ),
    DemoEvent(
        FILM, "L'Été à Saint-Malo", "Comedy", "French", 101, 7.3,
        "Trois cousins, une cabine de plage, et la marée qui n'attend personne.",
        people=("Zoé Lefèvre",),
    ),
    DemoEvent(
        FILM, "Le Cœur à l'ouvrage", "Drama", "French", 113, 7.6,
        "Une fonderie ferme. Ses ouvriers décident de couler une dernière cloche.",
    ),
    DemoEvent(
        FILM, "Ame no Jikokuhyo", "Drama", "Japanese", 118, 8.1,
        "The timetable of the rain: a stationmaster keeps one for a line that closed ten years ago.",
    ),
    DemoEvent(
        CONCERT, OPENING_SOON_TITLE, "Indie rock", "English", 130, 8.8,
        "Four people, one van, eleven cities. The new record, first track to last, and all you shout for.",
        featured=True,
    ),
    DemoEvent(
        CONCERT, "The Velvet Tramlines", "Jazz", "French", 105, 8.1,
        "Late-night quintet with two double basses and no drummer. You will not miss one.",
        people=("Odette Marchand", "Basile Koné"),
    ),
    DemoEvent(
        CONCERT, "Ritu Collective", "Fusion", "Hindi", 120, 8.5,
        "Six seasons, six ragas, one modular synthesiser.",
        featured=True, people=("Ananya Krishnamurthy",),
    ),
    DemoEvent(
        CONCERT, "Kadal Brass Orchestra", "Brass", "Tamil", 110, 8.0,
        "Twenty-two horns from the harbour quarter, and the loudest lullaby on the coast.",
        people=("Kadal Brass Orchestra", "Muthu Velan"),
    ),
    DemoEvent(
        CONCERT, NEARLY_SOLD_OUT_TITLE, "Classical", "", 95, 9.1,
        "Thirty years, four players, one last evening.",
    ),
    DemoEvent(
        CONCERT, FREE_TITLE, "Classical", "Hindi", 50, 8.7,
        "An hour of afternoon ragas, free for everyone. Bring your lunch, take your seat.",
        featured=True,
    ),
    DemoEvent(
        CONCERT, "Nova Harbour", "Electronic", "English", 100, 7.9,
        "Sirens, sub-bass and a light show that fits into two suitcases.",
        people=("Nova Harbour", "Tess Okafor"),
    ),
    DemoEvent(
        CONCERT, "Les Oiseaux Mécaniques", "Chanson", "French", 90, 8.2,
        "Boîtes à musique, accordéon et onze automates qui chantent presque juste.",
    ),
    DemoEvent(
        CONCERT, "Bassment Theory", "Hip hop", "English", 115, 7.4,
        "Two decks, a string section and footnotes.",
        people=("DJ Footnote", "The Margin Strings"),
    ),
    DemoEvent(
        CONCERT, "Tabla & Tape", "Fusion", "Hindi", 85, 7.8,
        "Loops made before your eyes on a reel older than the players.",
    ),
    DemoEvent(
        CONCERT, "Orchestra of the Ninth Hour", "Classical", "", 125, 8.9,
        "Seventy players in the dark. A whole symphony by heart.",
        featured=True,
    ),
    DemoEvent(
        CONCERT, "The Silent Choir", "Choral", "German", 80, 8.3,
        "Forty voices, no words. It begins before you notice.",
        people=("Greta Hollmann",),
    ),
    DemoEvent(
        MATCH, "Harbour Herons v Deccan Dynamos", "Cricket", "", 210, 8.6,
        "Premier Twenty, round nine. Two unbeaten sides under the floodlights.",
        featured=True,
    ),
    DemoEvent(
        MATCH, "Harbour Herons v Coastal Kites", "Cricket", "", 210, 8.0,
        "The derby of the western coast. The loser carries the winner's bags.",
    ),
    DemoEvent(
        MATCH, "Monsoon Mavericks v Garden City Rhinos", "Cricket", "", 210, 7.7,
        "Fast bowling against a batting order without a tail.",
    ),
    DemoEvent(
        MATCH, "Monsoon City v Étoile du Sud", "Football", "", 115, 7.9,
        "Friendly by name. The last three had eleven yellow cards.",
    ),
    DemoEvent(
        MATCH, "Monsoon City v Kanal Athletic", "Football", "", 115, 7.5,
        "Second leg of the Harbour Cup; the visitors lead by one.",
    ),
    DemoEvent(
        MATCH, "River Otters v North Pines", "Football", "", 115, 7.3,
        "Semi-final. Whoever wins is in the national league for the first time.",
    ),
)  # fmt: skip
