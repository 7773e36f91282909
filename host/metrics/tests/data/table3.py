"""Extracts the paper's Table 3 from its text: `python table3.py focus-2609.33158.txt > table3.csv`."""
import re
import sys

text = " ".join(open(sys.argv[1], encoding="utf-8").read().split())
start = text.index("Task Model type Method Accuracy AUROC AUPRC ECE Fairness Quality Shift")
text = text[start : text.index("Additional task-level comparisons")].replace("- encoders", "-encoders")
rows = re.findall(
    r"(Binary DR|Referable DR|Glaucoma|Overall)?\s*((?:General|Ophthalmic|Medical) (?:VM|VLM-encoders|MLLMs)) "
    r"(Linear probing|Zero-shot prompting|Zero-shot) ((?:\d\.\d{3} ?){7})",
    text,
)
print("task,model_type,method,accuracy,auroc,auprc,ece,fairness,quality,shift")
task = None
for block, model_type, method, numbers in rows:
    task = block or task
    print(",".join([task, model_type, method, *numbers.split()]))
